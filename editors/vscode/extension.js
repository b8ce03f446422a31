// Starts "etalis lsp" for EP-SPARQL queries.
const { commands, window, workspace } = require("vscode");
const { CloseAction, LanguageClient } = require("vscode-languageclient/node");

const SETTING = "ep-sparql.command";
let client;

async function advise(command) {
  const advice = `"${command} lsp" did not start. Install it with pip install 'etalis-py[editor]', or set ${SETTING} to where it is.`;
  const open = "Open setting";
  if ((await window.showErrorMessage(advice, open)) === open) commands.executeCommand("workbench.action.openSettings", SETTING);
}

exports.activate = async () => {
  const command = workspace.getConfiguration().get(SETTING);
  let started = false;
  let advised = false;
  let usual;
  const failed = () => {
    if (!advised) advise(command);
    advised = true;
  };
  const errorHandler = {
    error: (...details) => usual.error(...details),
    closed: () => {
      if (started) return usual.closed();
      failed();
      return { action: CloseAction.DoNotRestart, handled: true }; // it would fail again
    },
  };
  client = new LanguageClient("ep-sparql", "EP-SPARQL", { command, args: ["lsp"] }, {
    documentSelector: [{ language: "ep-sparql" }],
    errorHandler,
    initializationFailedHandler: () => false,
  });
  usual = client.createDefaultErrorHandler();
  client.start().then(() => (started = true), failed);
};

exports.deactivate = () => client && client.isRunning() && client.stop();
