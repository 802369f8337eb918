package flow.oracle;

/** What functions and sources of the pipelines fail with. */
final class OracleException extends RuntimeException {
  final long number;

  OracleException(long number) {
    super("user" + number, null, false, false);
    this.number = number;
  }
}
