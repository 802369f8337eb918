package flow.tck;

/** Hears how the tests go. Python implements it. */
public interface Report {
  void started(String test);

  /** The test has failed, and is tried again. */
  void repeated(String test);

  /** The status is "passed", "failed" or "skipped"; the stack is that of the failure, or empty. */
  void ended(String test, String status, long millis, String message, String stack);
}
