package flow.oracle;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.operators.QueueSubscription;
import java.util.Iterator;
import org.reactivestreams.Subscriber;

/** An iterator that is never asked for more than was requested, or polled. */
final class Iterated extends Flowable<Object> {
  private final Iterable<Object> items;

  Iterated(Iterable<Object> items) {
    this.items = items;
  }

  @Override
  protected void subscribeActual(Subscriber<? super Object> subscriber) {
    subscriber.onSubscribe(new Run(subscriber, items.iterator()));
  }

  private static final class Run implements QueueSubscription<Object> {
    private final Subscriber<? super Object> subscriber;
    private final Iterator<Object> iterator;
    private long demand = 0;
    private boolean asked = false;
    private boolean busy = false;
    private boolean over = false;

    Run(Subscriber<? super Object> subscriber, Iterator<Object> iterator) {
      this.subscriber = subscriber;
      this.iterator = iterator;
    }

    @Override
    public void request(long n) {
      demand = demand + n < 0 ? Long.MAX_VALUE : demand + n;
      if (busy) {
        return;
      }
      busy = true;
      while (!over && demand > 0) {
        Object item;
        try {
          item = poll();
        } catch (RuntimeException error) {
          over = true;
          subscriber.onError(error);
          break;
        }
        if (item == null) {
          over = true;
          subscriber.onComplete();
          break;
        }
        demand -= demand == Long.MAX_VALUE ? 0 : 1;
        subscriber.onNext(item);
      }
      busy = false;
    }

    @Override
    public void cancel() {
      over = true;
    }

    @Override
    public int requestFusion(int mode) {
      return mode & SYNC;
    }

    @Override
    public Object poll() {
      asked = true;
      return iterator.hasNext() ? iterator.next() : null;
    }

    @Override
    public boolean isEmpty() {
      try {
        return over || asked && !iterator.hasNext();
      } catch (RuntimeException error) {
        return false; // poll throws it
      }
    }

    @Override
    public void clear() {
      over = true;
    }

    @Override
    public boolean offer(Object item) {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean offer(Object first, Object second) {
      throw new UnsupportedOperationException();
    }
  }
}
