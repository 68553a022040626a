package inrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// GeminiArgs make Gemini CLI talk on this channel, with a policy file of the
// administrator's that makes it ask about everything.
func GeminiArgs(policy string) []string { return []string{"--acp", "--admin-policy", policy} }

// GeminiPolicy is that file. A rule about commands that has a pattern keeps Gemini
// from running by itself what it takes for harmless. A sub-agent runs tools and
// asks nobody, so there is none.
const GeminiPolicy = `[[rule]]
toolName = "*"
decision = "ask_user"
priority = 997

[[rule]]
toolName = "run_shell_command"
argsPattern = "."
decision = "ask_user"
priority = 998

[[rule]]
toolName = "invoke_agent"
decision = "deny"
priority = 999
`

// GeminiKeep makes a session below a home of Gemini CLI's fit to be gone on
// with. Gemini names the file of a session by the minute and the session's id,
// and begins such a file before it loads one: within the same minute it is the
// very file, which then holds nothing. So it gets the name of a minute long
// ago; what counts is what is in it.
func GeminiKeep(home, session string) error {
	short := session[:min(len(session), 8)]
	if strings.ContainsAny(short, "*?[\\/") {
		return errors.New("no session of Gemini CLI's has such a name")
	}
	files, err := filepath.Glob(filepath.Join(home, ".gemini", "tmp", "*", "chats", "session-*-"+short+".jsonl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		kept := filepath.Join(filepath.Dir(file), "session-2000-01-01T00-00-"+short+".jsonl")
		// Where there is one, what is beside it was begun and never used.
		if _, err := os.Lstat(kept); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(file, kept); err != nil {
			return err
		}
	}
	return nil
}
