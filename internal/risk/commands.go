package risk

import (
	"strings"
	"unicode"
)

// maxCommand bounds a command that begins in the middle of a sentence.
const maxCommand = 400

// shellBlocks are the languages of fenced blocks that are read as commands.
var shellBlocks = map[string]bool{"": true, "sh": true, "bash": true, "zsh": true, "shell": true, "console": true, "terminal": true, "shell-session": true}

// eachCommand calls f for the pieces of a prompt that may be commands: fenced
// blocks of shell, inline code, lines after a prompt sign, and what follows the
// name of a program in a sentence. No byte is in two pieces, so that the whole
// costs no more than analysing the prompt once.
func eachCommand(text string, f func(start, end int)) {
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		line := text[at:end]
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			at = block(text, end, strings.Trim(trimmed, "` \t\r"), f)
			continue
		case strings.HasPrefix(trimmed, "$ "), strings.HasPrefix(trimmed, "# ") && startsProgram(trimmed[2:]):
			f(end-len(trimmed)+2, end)
		default:
			inLine(text, at, end, f)
		}
		at = end + 1
	}
}

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// block reads a fenced block and returns where the text goes on.
func block(text string, at int, language string, f func(start, end int)) int {
	start := min(at+1, len(text))
	for at = start; at < len(text); {
		end := lineEnd(text, at)
		if strings.HasPrefix(strings.TrimLeft(text[at:end], " \t"), "```") {
			blockLines(text, start, at, language, f)
			return end + 1
		}
		at = end + 1
	}
	blockLines(text, start, len(text), language, f)
	return len(text)
}

func blockLines(text string, start, end int, language string, f func(start, end int)) {
	end = min(end, len(text))
	if shellBlocks[strings.ToLower(language)] && !strings.Contains(text[start:end], "\n$ ") && !strings.HasPrefix(text[start:end], "$ ") {
		f(start, end)
		return
	}
	for at := start; at < end; {
		stop := min(lineEnd(text, at), end)
		line := text[at:stop]
		if strings.HasPrefix(line, "$ ") {
			f(at+2, stop)
		} else {
			inLine(text, at, stop, f)
		}
		at = stop + 1
	}
}

// inLine finds inline code and programs in a line of prose.
func inLine(text string, at, end int, f func(start, end int)) {
	for at < end {
		switch c := text[at]; {
		case c == '`':
			close := strings.IndexByte(text[at+1:end], '`')
			if close < 0 {
				at++
				continue
			}
			f(at+1, at+1+close)
			at += close + 2
		case asciiWordByte(c):
			stop := at
			for stop < end && asciiWordByte(text[stop]) {
				stop++
			}
			if !dispatchTable().programs[text[at:stop]] || stop < end && text[stop] != ' ' && text[stop] != '\t' {
				at = stop
				continue
			}
			stop = clause(text, at, min(end, at+maxCommand))
			f(at, stop)
			at = stop
		default:
			at++
		}
	}
}

// startsProgram says whether a text begins with the name of a program.
func startsProgram(s string) bool {
	name, _, _ := strings.Cut(s, " ")
	return dispatchTable().programs[name]
}

// clause is where a command in a sentence ends: at its full stop, or at the
// backtick that begins a piece of code.
func clause(text string, at, end int) int {
	for i := at; i < end; i++ {
		switch text[i] {
		case '`':
			return i
		case '.', '!', '?', ',', ';':
			if i+1 == end || unicode.IsSpace(rune(text[i+1])) {
				return i
			}
		}
	}
	return end
}

// eachStatement calls f for the beginnings of SQL statements that destroy.
func eachStatement(text string, f func(start, end int)) {
	statements := dispatchTable().statements
	var want []string
	from, to := 0, 0
	eachASCIIWord(text, func(start, end int) {
		w := strings.ToLower(text[start:end])
		for _, second := range want {
			if w == second && start-to < 8 && strings.TrimSpace(text[to:start]) == "" {
				f(from, end)
			}
		}
		want, from, to = statements[w], start, end
	})
}
