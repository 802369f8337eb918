package flow.tck;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import org.reactivestreams.tck.SubscriberWhiteboxVerification.WhiteboxSubscriberProbe;
import org.reactivestreams.tck.TestEnvironment;
import org.reactivestreams.tck.flow.FlowPublisherVerification;
import org.reactivestreams.tck.flow.FlowSubscriberBlackboxVerification;
import org.reactivestreams.tck.flow.FlowSubscriberWhiteboxVerification;
import org.reactivestreams.tck.flow.IdentityFlowProcessorVerification;
import org.testng.annotations.AfterClass;

/** The kit's abstract verifications, made concrete by a {@link Subject}. */
public final class Verifications {
  private Verifications() {}

  public static final class OfPublisher extends FlowPublisherVerification<Object> {
    private final Subject subject;
    private final long most;

    public OfPublisher(TestEnvironment env, long gcMillis, Subject subject, long most) {
      super(env, gcMillis);
      this.subject = subject;
      this.most = most;
    }

    @Override
    public Flow.Publisher<Object> createFlowPublisher(long elements) {
      return subject.publisher(elements);
    }

    @Override
    public Flow.Publisher<Object> createFailedFlowPublisher() {
      return subject.failed();
    }

    @Override
    public long maxElementsFromPublisher() {
      return most;
    }
  }

  public static final class OfProcessor extends IdentityFlowProcessorVerification<Object> {
    private final ExecutorService executor = Executors.newFixedThreadPool(4);
    private final Subject subject;
    private final boolean coordinated;
    private final long subscribers;

    public OfProcessor(
        TestEnvironment env,
        long gcMillis,
        Subject subject,
        boolean coordinated,
        long subscribers) {
      super(env, gcMillis);
      this.subject = subject;
      this.coordinated = coordinated;
      this.subscribers = subscribers;
    }

    @Override
    protected Flow.Publisher<Object> createFailedFlowPublisher() {
      return subject.failed();
    }

    @Override
    protected Flow.Processor<Object, Object> createIdentityFlowProcessor(int buffer) {
      return subject.processor(buffer);
    }

    @Override
    public Object createElement(int element) {
      return element;
    }

    @Override
    public ExecutorService publisherExecutorService() {
      return executor;
    }

    @Override
    public boolean doesCoordinatedEmission() {
      return coordinated;
    }

    @Override
    public long maxSupportedSubscribers() {
      return subscribers;
    }

    @AfterClass
    public void stop() {
      executor.shutdown();
    }
  }

  public static final class OfSubscriber extends FlowSubscriberBlackboxVerification<Object> {
    private final Subject subject;

    public OfSubscriber(TestEnvironment env, Subject subject) {
      super(env);
      this.subject = subject;
    }

    @Override
    public Flow.Subscriber<Object> createFlowSubscriber() {
      return subject.subscriber();
    }

    @Override
    public Object createElement(int element) {
      return element;
    }
  }

  public static final class OfProbedSubscriber extends FlowSubscriberWhiteboxVerification<Object> {
    private final Subject subject;

    public OfProbedSubscriber(TestEnvironment env, Subject subject) {
      super(env);
      this.subject = subject;
    }

    @Override
    protected Flow.Subscriber<Object> createFlowSubscriber(WhiteboxSubscriberProbe<Object> probe) {
      return subject.probed(probe);
    }

    @Override
    public Object createElement(int element) {
      return element;
    }
  }
}
