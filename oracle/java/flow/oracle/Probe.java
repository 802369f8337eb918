package flow.oracle;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.operators.ConditionalSubscriber;
import java.util.List;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** A source that keeps the rules, signals in the requester's thread, and writes down what it sees. */
final class Probe extends Flowable<Object> {
  private final Trace trace;
  private final List<Object> items;
  private final Node end;
  private final boolean conditional;

  /**
   * @param items what it sends on demand
   * @param end "complete", "never" or "(error n)": what comes after them, without demand
   * @param conditional whether it asks conditional subscribers
   */
  Probe(Trace trace, List<Object> items, Node end, boolean conditional) {
    this.trace = trace;
    this.items = items;
    this.end = end;
    this.conditional = conditional;
  }

  @Override
  protected void subscribeActual(Subscriber<? super Object> subscriber) {
    Run run = new Run(subscriber, trace.probe());
    run.note("subscribe");
    subscriber.onSubscribe(run);
    run.busy = false;
    run.drain();
  }

  private final class Run implements Subscription {
    private final Subscriber<? super Object> subscriber;
    private final int name;
    private int next = 0;
    private long demand = 0;
    private boolean over = false;

    /** Nothing is sent before onSubscribe has returned, and nothing within onNext. */
    boolean busy = true;

    Run(Subscriber<? super Object> subscriber, int name) {
      this.subscriber = subscriber;
      this.name = name;
    }

    void note(String event) {
      trace.add(name + " " + event);
    }

    @Override
    public void request(long n) {
      if (over || demand == Long.MAX_VALUE) {
        return; // it changes nothing
      }
      note("request " + n);
      if (n <= 0) {
        over = true;
        subscriber.onError(new IllegalArgumentException("§3.9 violated: request(" + n + ")"));
        return;
      }
      demand = demand + n < 0 ? Long.MAX_VALUE : demand + n;
      drain();
    }

    @Override
    public void cancel() {
      if (!over) {
        note("cancel");
        over = true;
      }
    }

    void drain() {
      if (busy) {
        return;
      }
      busy = true;
      while (!over) {
        if (next == items.size()) {
          if (end.word.equals("never")) {
            break;
          }
          over = true;
          if (end.word.equals("complete")) {
            note("complete");
            subscriber.onComplete();
          } else {
            note("error");
            subscriber.onError(new OracleException(end.number(0)));
          }
        } else if (demand == 0) {
          break;
        } else {
          if (!given(items.get(next++))) {
            continue;
          }
          if (demand != Long.MAX_VALUE) {
            demand--;
          }
        }
      }
      busy = false;
    }

    private boolean given(Object item) {
      note("next " + Trace.shown(item));
      if (conditional && subscriber instanceof ConditionalSubscriber<? super Object> asked) {
        return asked.tryOnNext(item);
      }
      subscriber.onNext(item);
      return true;
    }
  }
}
