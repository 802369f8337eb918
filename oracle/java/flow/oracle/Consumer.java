package flow.oracle;

import io.reactivex.rxjava3.core.FlowableSubscriber;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** The subscriber at the end: requests and cancels as it was told, and writes down what it gets. */
class Consumer implements Subscriber<Object> {
  private final Trace trace;
  private final Node demand;
  private Subscription subscription;
  private int items = 0;

  /** @param demand see flow_oracle/language.py */
  Consumer(Trace trace, Node demand) {
    this.trace = trace;
    this.demand = demand;
  }

  @Override
  public void onSubscribe(Subscription given) {
    subscription = given;
    trace.add("subscribed");
    request(demand.number(0));
  }

  @Override
  public void onNext(Object item) {
    trace.add("next " + Trace.shown(item));
    items++;
    if (items == demand.number(2)) {
      cancel();
    } else {
      request(demand.number(1));
    }
  }

  @Override
  public void onError(Throwable error) {
    trace.add("error " + Trace.shown(error));
  }

  @Override
  public void onComplete() {
    trace.add("complete");
  }

  /** What is left to do when subscribe has returned. */
  void steps() {
    for (Node step : demand.from(3)) {
      if (subscription == null) {
        trace.add("no subscription");
      } else if (step.word.equals("cancel")) {
        cancel();
      } else {
        trace.add("request " + step.word);
        subscription.request(step.number());
      }
    }
  }

  private void request(long n) {
    if (n != 0) {
      trace.add("request " + n);
      subscription.request(n);
    }
  }

  private void cancel() {
    trace.add("cancel");
    subscription.cancel();
  }

  /** One that no guard is put before. */
  static final class Core extends Consumer implements FlowableSubscriber<Object> {
    Core(Trace trace, Node demand) {
      super(trace, demand);
    }
  }
}
