package flow.tck;

import java.util.concurrent.Flow;

/**
 * Python's objects as Java's. What a Python method raises cannot be thrown from Python: it would
 * arrive as a class of the bridge's, and no NullPointerException would ever be seen. So Python's
 * methods return what is to be thrown, or null, and it is thrown here.
 */
public final class Python {
  private Python() {}

  // Errors are made here. One that was made in Python cannot always be handed over by the bridge:
  // never a NullPointerException, and the others not reliably from several threads.

  public static Throwable nullPointer(String message) {
    return new NullPointerException(message);
  }

  public static Throwable illegalArgument(String message) {
    return new IllegalArgumentException(message);
  }

  public static Throwable error(String message) {
    return new PythonError(message);
  }

  /** Implemented by Python. */
  public interface PublisherSide {
    Throwable subscribe(Flow.Subscriber<? super Object> subscriber);
  }

  /** Implemented by Python. */
  public interface SubscriptionSide {
    Throwable request(long n);

    Throwable cancel();
  }

  /** Implemented by Python. */
  public interface SubscriberSide {
    Throwable onSubscribe(Flow.Subscription subscription);

    Throwable onNext(Object item);

    Throwable onError(Throwable error);

    Throwable onComplete();
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void raise(Throwable error) throws E {
    if (error != null) {
      throw (E) error;
    }
  }

  public static final class Publisher implements Flow.Publisher<Object> {
    private final PublisherSide side;

    public Publisher(PublisherSide side) {
      this.side = side;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
      raise(side.subscribe(subscriber));
    }

    @Override
    public String toString() {
      return side.toString();
    }
  }

  public static final class Subscription implements Flow.Subscription {
    private final SubscriptionSide side;

    public Subscription(SubscriptionSide side) {
      this.side = side;
    }

    @Override
    public void request(long n) {
      raise(side.request(n));
    }

    @Override
    public void cancel() {
      raise(side.cancel());
    }

    @Override
    public String toString() {
      return side.toString();
    }
  }

  public static class Subscriber implements Flow.Subscriber<Object> {
    private final SubscriberSide side;

    public Subscriber(SubscriberSide side) {
      this.side = side;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      raise(side.onSubscribe(subscription));
    }

    @Override
    public void onNext(Object item) {
      raise(side.onNext(item));
    }

    @Override
    public void onError(Throwable error) {
      raise(side.onError(error));
    }

    @Override
    public void onComplete() {
      raise(side.onComplete());
    }

    @Override
    public String toString() {
      return side.toString();
    }
  }

  public static final class Processor extends Subscriber implements Flow.Processor<Object, Object> {
    private final PublisherSide side;

    public Processor(SubscriberSide in, PublisherSide out) {
      super(in);
      this.side = out;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
      raise(side.subscribe(subscriber));
    }
  }
}
