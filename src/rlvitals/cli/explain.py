"""Explain a metric, a framework's key, a rule, a term or a setting.

examples:
  rlvitals explain train/approx_kl
  rlvitals explain kl-above-target
  rlvitals explain explained variance
"""

from argparse import ArgumentParser, Namespace

from rlvitals.cli.command import Command


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the name, which may contain spaces."""
    parser.add_argument("name", nargs="+", help="a name; all its meanings are printed")
    parser.add_argument("--markdown", action="store_true", help="print the page as Markdown")


def run(args: Namespace) -> int:
    """Print the page."""
    from rlvitals.views import manual_page
    from rlvitals.views.console import emit
    from rlvitals.views.explain import explain

    text = explain(" ".join(args.name))
    if args.markdown:
        print(text)
    else:
        emit(manual_page.page(text))
    return 0


COMMAND = Command("explain", __doc__, add_arguments, run)
