package flow.tck;

import java.util.concurrent.Flow;
import org.reactivestreams.tck.SubscriberWhiteboxVerification.WhiteboxSubscriberProbe;

/** What is verified. Python implements it; each verification asks for what it needs. */
public interface Subject {
  /** A publisher of exactly this many items. */
  Flow.Publisher<Object> publisher(long items);

  /** A publisher that fails whoever subscribes. */
  Flow.Publisher<Object> failed();

  /** A processor that passes items on, and can hold this many. */
  Flow.Processor<Object, Object> processor(int buffer);

  /** A subscriber that asks for items by itself. */
  Flow.Subscriber<Object> subscriber();

  /** A subscriber that tells the probe what it sees, and does what the probe asks for. */
  Flow.Subscriber<Object> probed(WhiteboxSubscriberProbe<Object> probe);
}
