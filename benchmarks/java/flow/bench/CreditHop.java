package flow.bench;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;

/** The least that a bounded hop can be: a queue, credits, and a task that drains; see bench_ops.py. */
final class CreditHop implements Runnable {
  private final Executor pool;
  private final int items;
  private final int credit;
  private final int batch;
  private final Sum sum;
  private final ConcurrentLinkedQueue<Integer> queue = new ConcurrentLinkedQueue<>();
  private final AtomicInteger work = new AtomicInteger();
  private final AtomicInteger granted = new AtomicInteger();
  private final CountDownLatch done = new CountDownLatch(1);
  private int produced;
  private int consumed;
  private int total;

  CreditHop(Executor pool, int items, int credit, Sum sum) {
    this.pool = pool;
    this.items = items;
    this.credit = credit;
    this.batch = credit - credit / 4;
    this.sum = sum;
  }

  void await() throws InterruptedException {
    grant(credit);
    done.await();
  }

  private void grant(int credit) {
    if (granted.getAndAdd(credit) != 0) {
      return; // the other thread produces right now, and goes on with it
    }
    int left = credit;
    do {
      int end = Math.min(items, produced + left);
      while (produced < end) {
        queue.offer(produced++);
        if (work.getAndIncrement() == 0) {
          pool.execute(this);
        }
      }
      left = granted.addAndGet(-left);
    } while (left != 0);
  }

  @Override
  public void run() {
    int missed = 1;
    do {
      Integer item;
      while ((item = queue.poll()) != null) {
        sum.accept(item);
        total++;
        if (++consumed == batch) {
          consumed = 0;
          grant(batch);
        }
      }
      missed = work.addAndGet(-missed);
    } while (missed != 0);
    if (total == items) {
      done.countDown();
    }
  }
}
