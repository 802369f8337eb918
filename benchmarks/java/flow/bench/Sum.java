package flow.bench;

import io.reactivex.rxjava3.functions.Consumer;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A callback that adds up, and that the compiler cannot do without.
 *
 * <p>Each item is stored by an opaque write, which is neither left out nor joined with others. So
 * each has to be an object, and a loop over them stays a loop, for the plain one as for RxJava.
 */
final class Sum implements Consumer<Integer> {
  private static final VarHandle LAST;

  static {
    try {
      LAST = MethodHandles.lookup().findVarHandle(Sum.class, "last", Integer.class);
    } catch (ReflectiveOperationException error) {
      throw new ExceptionInInitializerError(error);
    }
  }

  long total;
  private Integer last;

  @Override
  public void accept(Integer n) {
    LAST.setOpaque(this, n);
    total += n;
  }
}
