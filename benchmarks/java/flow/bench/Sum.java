package flow.bench;

import io.reactivex.rxjava3.functions.Consumer;

/** A callback that adds up. */
final class Sum implements Consumer<Integer> {
  long total;

  @Override
  public void accept(Integer n) {
    total += n;
  }
}
