"""The pages and the panes of the view, in the order of the tabs and of the key v."""

from crew.front.tui.pages.agent_page import AgentPage
from crew.front.tui.pages.channel_page import ChannelPage
from crew.front.tui.pages.cost_page import CostPage
from crew.front.tui.pages.inbox_page import InboxPage
from crew.front.tui.pages.page import Page
from crew.front.tui.pages.queue_page import QueuePage
from crew.front.tui.pages.task_page import TaskPage
from crew.front.tui.panes.checkpoint_pane import CheckpointPane
from crew.front.tui.panes.description_pane import DescriptionPane
from crew.front.tui.panes.diff_pane import DiffPane
from crew.front.tui.panes.log_pane import LogPane
from crew.front.tui.panes.pane import Pane
from crew.front.tui.panes.terminal_pane import TerminalPane
from crew.front.tui.panes.timeline_pane import TimelinePane

PAGES: tuple[type[Page], ...] = (TaskPage, AgentPage, InboxPage, QueuePage, ChannelPage, CostPage)

PANES: tuple[type[Pane], ...] = (
    DescriptionPane,
    LogPane,
    DiffPane,
    TimelinePane,
    CheckpointPane,
    TerminalPane,
)
"""The panes about one task: its text, log, diff, timeline, checkpoints and terminal."""
