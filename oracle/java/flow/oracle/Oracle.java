package flow.oracle;

import io.reactivex.rxjava3.plugins.RxJavaPlugins;

/** Runs pipelines that are described by text. */
public final class Oracle {
  private static Trace trace = new Trace();

  static {
    RxJavaPlugins.setErrorHandler(error -> trace.add("dropped " + Trace.shown(error)));
  }

  private Oracle() {}

  /** @return a line for each event */
  public static String run(String text) {
    trace = new Trace();
    try {
      Node node = Node.parse(text);
      Node demand = node.at(1);
      Consumer consumer =
          node.word.equals("core")
              ? new Consumer.Core(trace, demand)
              : new Consumer(trace, demand);
      new Pipelines(trace).flow(node.at(0), null).subscribe(consumer);
      consumer.steps();
    } catch (Trace.TooLong end) {
      return "too long\n";
    } catch (RuntimeException error) {
      return trace + "raised " + Trace.shown(error) + "\n";
    }
    return trace.toString();
  }
}
