"""How a question for a person is made, whoever asks it."""

from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Run
from crew.domain.world import World


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
