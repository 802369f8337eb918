package flow.oracle;

import io.reactivex.rxjava3.exceptions.CompositeException;
import io.reactivex.rxjava3.exceptions.MissingBackpressureException;
import io.reactivex.rxjava3.exceptions.UndeliverableException;
import java.util.List;
import java.util.NoSuchElementException;

/** What happens in one run, in order: a line for each signal. */
final class Trace {
  static final int LIMIT = 20_000;

  private final StringBuilder lines = new StringBuilder();
  private int events = 0;
  private int probes = 0;

  /** A number for a source that is subscribed to. */
  int probe() {
    return probes++;
  }

  void add(String event) {
    if (++events > LIMIT) {
      throw new TooLong();
    }
    lines.append(event).append('\n');
  }

  @Override
  public String toString() {
    return lines.toString();
  }

  static String shown(Object item) {
    if (!(item instanceof List<?> list)) {
      return item.toString();
    }
    StringBuilder text = new StringBuilder("[");
    for (Object part : list) {
      text.append(text.length() > 1 ? "," : "").append(shown(part));
    }
    return text.append(']').toString();
  }

  static String shown(Throwable error) {
    if (error instanceof OracleException ours) {
      return "user" + ours.number;
    }
    if (error instanceof UndeliverableException wrapper) {
      return shown(wrapper.getCause());
    }
    if (error instanceof CompositeException several) {
      StringBuilder text = new StringBuilder("several(");
      for (Throwable part : several.getExceptions()) {
        text.append(text.length() > 8 ? "," : "").append(shown(part));
      }
      return text.append(')').toString();
    }
    String message = String.valueOf(error.getMessage());
    if (error instanceof NullPointerException) {
      return "null";
    }
    if (error instanceof NoSuchElementException) {
      return "no-item";
    }
    if (error instanceof MissingBackpressureException) {
      return "overflow";
    }
    if (error instanceof IllegalArgumentException && message.contains("3.9")) {
      return "bad-request";
    }
    if (error instanceof IllegalArgumentException && message.contains("more than one element")) {
      return "too-many";
    }
    if (error instanceof IllegalStateException && message.matches("(?i).*only .*subscriber.*")) {
      return "one-subscriber";
    }
    return error.getClass().getName() + ":" + message.replace('\n', ' ');
  }

  /** Ends a run that would fill the memory. */
  static final class TooLong extends VirtualMachineError {}
}
