// Starts "etalis lsp" for EP-SPARQL queries.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("ep-sparql").get("command");
  client = new LanguageClient("ep-sparql", "EP-SPARQL", { command, args: ["lsp"] }, {
    documentSelector: [{ language: "ep-sparql" }],
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
