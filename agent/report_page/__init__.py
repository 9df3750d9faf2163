"""The report as one HTML file that needs no network: verdict, charts, map, node time, every launch with its command."""

from agent.report_page.page import render

__all__ = ["render"]
