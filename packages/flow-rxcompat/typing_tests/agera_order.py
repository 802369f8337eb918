"""What may follow what in the description of a repository: a wrong order is refused. Never run.

Each line that is marked has an error, and the checkers are told to complain of a mark without one.
"""

from __future__ import annotations

from flow_rxcompat.agera import RepositoryConfig, Result, repositories

numbers = repositories.mutable_repository(1)

# -- what begins it

source = repositories.repository_with_initial_value("?")
source.on_updates_per_loop()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
source.on_updates_per(100)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
source.get_from(numbers)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
source.compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
source.observe(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

frequency = source.observe(numbers).observe()
frequency.get_from(numbers)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
frequency.then_skip()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
frequency.compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

# -- the directives

directives = frequency.on_updates_per_loop()
directives.observe(numbers)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
directives.on_updates_per(100)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
directives.or_skip()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
directives.notify_if(lambda old, new: True)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownLambdaType]
directives.compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
directives.then_get_from(numbers)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - an int is not text
directives.get_from(numbers).transform(str.upper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
directives.attempt_transform(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it gives no Result
directives.go_to(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# -- a check or an attempt needs its other way out before anything else


def parse(text: str) -> Result[int]:
    return Result.success(int(text))


def shown(text: str) -> Result[str]:
    return Result.success(text)


checked = directives.check(lambda text: text != "")
checked.transform(len)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
checked.then_skip()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
checked.or_continue()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
checked.or_end(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
attempted = directives.attempt_transform(parse)
attempted.transform(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
attempted.or_continue()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
last = directives.then_attempt_transform(shown)
last.compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
last.or_skip().or_skip()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
last.or_continue().compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
directives.then_attempt_transform(parse)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - an int is not text

# -- after go_lazy

lazily = directives.go_lazy()
lazily.go_lazy()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
lazily.transform(len).go_to(print)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
lazily.check(bool).or_skip().go_to(print)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
lazily.attempt_transform(parse).or_skip().go_lazy()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

# -- what ends it

config = directives.then_transform(lambda text: text * 2)
config.transform(len)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
config.observe(numbers)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
config.notify_if(lambda old: True)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
config.on_deactivation("cancel")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
config.on_concurrent_update(RepositoryConfig.CANCEL_FLOW).compile().accept("x")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
config.compile().compile()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
config.compile_into_repository_with_initial_value(0).get_from(numbers)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
