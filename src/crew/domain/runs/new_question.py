"""How a question for a person is made, whichever run asks it."""

from crew.domain.kernel.fact import Fact
from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Run
from crew.domain.world import World, born


def new_question(
    world: World,
    run: Run,
    *,
    text: str,
    context: str,
    at: float,
    about: About = About.INPUT,
    choices: tuple[str, ...] = (),
) -> Question:
    return Question(
        id=f"q{len(world.questions) + 1}",
        task=run.task,
        run=run.id,
        role=run.role or "worker",
        question=text,
        context=context,
        about=about,
        choices=choices,
        asked_at=at,
    )


def permission_asked(world: World, run: Run, tool: str, detail: str, *, at: float) -> Fact:
    """An agent wants to use a tool in the middle of its step."""
    question = new_question(
        world,
        run,
        text=f"May the agent use {tool}? Answer yes or no.",
        context=detail,
        at=at,
        about=About.PERMISSION,
    )
    return born(question, "asked", at=at)
