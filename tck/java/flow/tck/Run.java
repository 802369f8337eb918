package flow.tck;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import org.testng.IAnnotationTransformer;
import org.testng.IConfigurationListener;
import org.testng.IRetryAnalyzer;
import org.testng.ITestListener;
import org.testng.ITestResult;
import org.testng.TestNG;
import org.testng.annotations.Factory;
import org.testng.annotations.ITestAnnotation;

/** Has TestNG run one verification that is already there, in the calling thread. */
public final class Run {
  private static Object verification;

  /** TestNG takes classes only; this is where it finds the object. */
  @Factory
  public Object[] verifications() {
    return new Object[] {verification};
  }

  public static void verify(Object made, Report report) {
    verification = made;
    TestNG testng = new TestNG(false);
    testng.setVerbose(0);
    testng.setTestClasses(new Class<?>[] {Run.class});
    testng.addListener(new Listener(report));
    testng.addListener(new Patience());
    testng.run();
    verification = null;
  }

  /**
   * Tries the test of §3.13 again. The kit gives the garbage collector and the thread that reports
   * what it found 100 ms, whatever else the machine does; no setting changes that. A reference
   * that is kept is kept every time.
   */
  private static final class Patience implements IAnnotationTransformer {
    @Override
    @SuppressWarnings("rawtypes")
    public void transform(
        ITestAnnotation annotation, Class type, Constructor constructor, Method method) {
      if (method != null && method.getName().startsWith("required_spec313_")) {
        annotation.setRetryAnalyzer(Again.class);
      }
    }
  }

  /** TestNG makes one for each test. */
  public static final class Again implements IRetryAnalyzer {
    private static final int ATTEMPTS = 5;
    private static final long PAUSE_MILLIS = 500;
    private int made = 0;

    @Override
    public boolean retry(ITestResult result) {
      made++;
      try {
        Thread.sleep(made * PAUSE_MILLIS);
      } catch (InterruptedException interrupted) {
        return false;
      }
      return made < ATTEMPTS;
    }
  }

  private static final class Listener implements ITestListener, IConfigurationListener {
    private final Report report;

    Listener(Report report) {
      this.report = report;
    }

    @Override
    public void onTestStart(ITestResult result) {
      report.started(result.getName());
    }

    @Override
    public void onTestSuccess(ITestResult result) {
      ended(result, "passed");
    }

    @Override
    public void onTestFailure(ITestResult result) {
      ended(result, "failed");
    }

    @Override
    public void onTestSkipped(ITestResult result) {
      ended(result, "skipped");
    }

    @Override
    public void onConfigurationFailure(ITestResult result) {
      ended(result, "failed");
    }

    private void ended(ITestResult result, String status) {
      if (result.wasRetried()) {
        report.repeated(result.getName());
        return;
      }
      Throwable cause = result.getThrowable();
      StringWriter stack = new StringWriter();
      if (cause != null) {
        cause.printStackTrace(new PrintWriter(stack));
      }
      report.ended(
          result.getName(),
          status,
          result.getEndMillis() - result.getStartMillis(),
          String.valueOf(cause == null ? "" : cause.getMessage()),
          stack.toString());
    }
  }
}
