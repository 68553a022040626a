// Package inrun talks with an agent's CLI while it runs, through the channel on
// which the CLI asks before it uses a tool and on which silence is a no.
//
// [Claude] speaks Claude Code's control protocol over standard input and output,
// [Codex] the JSON-RPC of `codex app-server`, [ACP] the Agent Client Protocol of
// Gemini CLI and Grok. Each returns a function that holds the whole
// conversation: it gives the CLI its prompt, puts every tool call to an [Ask],
// tells the CLI the answer and says how the call ended. Vibe has no such
// channel; its strict hook does the same work (internal/hook).
//
// A call runs only on an answer that lets it. Whatever else happens, it does
// not: a question that cannot be read or is not known, an Ask that panics, an
// ended context, an ended stream. None of these is answered with more than a
// refusal, and what spoils the conversation ends it with an error.
//
// The log gets one JSON object a line. Claude's are its own, without those of
// the control protocol; the other channels write [Line]. What is printed on
// standard output besides JSON objects is passed on as a note.
//
// The package starts no process, knows no policy and opens no file.
//
// Start reading at [Ask] and at conversation.go.
package inrun
