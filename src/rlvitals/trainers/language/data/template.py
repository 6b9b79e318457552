"""Templates of a question about a chart and of its answer."""

from rlvitals import UsageError

QUERY_FIELD = "{query}"
CHART_TEMPLATE = (
    "Look at the chart and answer the question. Think first: the chart's type, its table as JSON,"
    " then numbered steps. Answer in this form:\n"
    '<think>\n<type>bar</type>\n<table>{"columns": [...], "rows": [[...], ...]}</table>\n'
    "<step-1>: ...\n<step-2>: ...</think>\n<answer>...</answer>\n"
    "Question: {query}"
)


def fill_template(query: str, template: str = CHART_TEMPLATE) -> str:
    """Return the words around a query: braces but those of `{query}` stand for themselves.

    Raises UsageError for a template that has no place for it.
    """
    if QUERY_FIELD not in template:
        raise UsageError(
            f"there is no {QUERY_FIELD} in {template!r}: all prompts would be one",
            where="data.prompt_template",
        )
    return template.replace(QUERY_FIELD, query)


def format_answer(chart_type: str, table: str, reasoning: str, label: str) -> str:
    """Return a completion in the form that is asked for."""
    return (
        f"<think>\n<type>{chart_type}</type>\n<table>{table}</table>\n{reasoning}</think>\n"
        f"<answer>{label}</answer>"
    )
