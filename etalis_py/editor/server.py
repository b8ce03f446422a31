"""The language server: ``features`` over the Language Server Protocol, on standard input and output."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from etalis_py.editor.features import complete, diagnose, hover, tidy
from etalis_py.editor.operators import OPERATORS

_SEVERITY = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}
_KIND = {
    "variable": lsp.CompletionItemKind.Variable,
    "name": lsp.CompletionItemKind.Property,
    "prefix": lsp.CompletionItemKind.Module,
    "keyword": lsp.CompletionItemKind.Keyword,
}


def make_server(version: str = "") -> LanguageServer:
    """A server that checks a text when it is opened and whenever it changes."""
    server = LanguageServer("etalis", version)

    def publish(document: TextDocument) -> None:
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(document.uri, diagnostics(document), version=document.version)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        publish(server.workspace.get_text_document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        publish(server.workspace.get_text_document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        at = document.position_codec.position_from_client_units(document.lines, params.position)
        meaning = hover(document.source, at.line, at.character)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, meaning)) if meaning else None

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["?", ":"]))
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.workspace.get_text_document(params.text_document.uri)
        at = document.position_codec.position_from_client_units(document.lines, params.position)
        items = [_item(name, about) for name, about in complete(document.source, at.line, at.character)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        text = tidy(document.source)
        if text is None or text == document.source:
            return None
        everything = lsp.Range(lsp.Position(0, 0), lsp.Position(len(document.lines) + 1, 0))
        return [lsp.TextEdit(everything, text)]

    return server


def diagnostics(document: TextDocument) -> list[lsp.Diagnostic]:
    """The findings of a text, with columns as the client counts them."""
    return [
        lsp.Diagnostic(
            range=document.position_codec.range_to_client_units(
                document.lines,
                lsp.Range(
                    lsp.Position(fault.line - 1, fault.column - 1),
                    lsp.Position(fault.line - 1, max(fault.end, fault.column + 1) - 1),
                ),
            ),
            message=fault.message + (f"\n{fault.hint}" if fault.hint else ""),
            severity=_SEVERITY[fault.severity],
            code=fault.code,
            source="etalis",
        )
        for fault in diagnose(document.source)
    ]


def _item(name: str, about: str) -> lsp.CompletionItem:
    operator = OPERATORS.get(name)
    return lsp.CompletionItem(
        label=name,
        kind=_KIND.get(about, lsp.CompletionItemKind.Operator),
        detail=about,
        documentation=operator.meaning if operator else None,
    )
