package flow.tck;

/** A Python exception on its way through Java. Its message has the exception's class and text. */
public final class PythonError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public PythonError(String message) {
    super(message, null, false, true);
  }
}
