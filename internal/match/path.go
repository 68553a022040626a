package match

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of paths.
const (
	MaxPath  = 4096 // bytes, as Linux has it
	maxLinks = 40   // links followed in one resolution, as Linux has it
)

// Errors of paths. A caller that guards denies on each of them.
var (
	ErrEmptyPath   = errors.New("the path is empty")
	ErrLongPath    = fmt.Errorf("the path is longer than %d bytes", MaxPath)
	ErrNoBase      = errors.New("a relative path needs an absolute base directory")
	ErrNoHome      = errors.New(`"~" needs a home directory`)
	ErrOtherHome   = errors.New("another user's home directory cannot be known from the text")
	ErrFileURL     = errors.New("a file URL of another host, or one that does not parse")
	ErrMagicLink   = errors.New("the path goes through another process's directory, which cannot be known from the text")
	ErrLinkLoop    = fmt.Errorf("more than %d symbolic links", maxLinks)
	ErrNotAbsolute = errors.New("the path is not absolute")
)

// A Base is what relative names are relative to.
type Base struct {
	Dir  string // the working directory, absolute
	Home string // what "~" stands for, absolute; empty if unknown
}

// A Form is the Unicode form a name is written in.
type Form uint8

// The forms. On macOS the composed and decomposed spellings of a name are one file, on Linux two.
const (
	FormASCII Form = iota
	FormNFC        // composed, the usual one
	FormNFD        // decomposed
	FormMixed      // neither
)

// A Path is a name made absolute without looking at any file system.
type Path struct {
	// Clean has no ".", "..", empty element or trailing slash. It equals the real path only where
	// no symbolic link precedes a ".."; Resolve tells.
	Clean string
	// Raw is absolute too but keeps "..". It is what Resolve must be given, because "link/.."
	// is the parent of what the link points to.
	Raw string
	// Form is the Unicode form of Clean.
	Form Form
	// Magic marks names the kernel resolves per process (/proc/self/fd/3, /dev/fd/3): the file
	// behind them cannot be known from the text.
	Magic bool
}

// CleanPath reads a word as a tool or a shell would: "~" and "~/x", file URLs, names relative to
// base.Dir, ".", "..", doubled slashes. /proc/self/root and /proc/self/cwd are resolved like the
// links they are, since naming a file through them is a known way around path rules.
func CleanPath(base Base, word string) (Path, error) {
	abs, err := absolute(base, word)
	if err != nil {
		return Path{}, fmt.Errorf("path %s: %w", Visible(word), err)
	}
	return finishPath(base, abs)
}

// CleanLiteral is CleanPath for a word that is known to be a plain name, in which "~" and "file:"
// mean nothing, such as a quoted shell word.
func CleanLiteral(base Base, word string) (Path, error) {
	err := checkPath(word)
	if err == nil && !path.IsAbs(word) {
		if !path.IsAbs(base.Dir) {
			err = ErrNoBase
		}
		word = base.Dir + "/" + word
	}
	if err != nil {
		return Path{}, fmt.Errorf("path %s: %w", Visible(word), err)
	}
	return finishPath(base, word)
}

func checkPath(word string) error {
	switch {
	case word == "":
		return ErrEmptyPath
	case len(word) > MaxPath:
		return ErrLongPath
	case strings.IndexByte(word, 0) >= 0:
		return ErrNUL
	case !utf8.ValidString(word):
		return ErrBadUTF8
	}
	return nil
}

func absolute(base Base, word string) (string, error) {
	if err := checkPath(word); err != nil {
		return "", err
	}
	if len(word) > 5 && strings.EqualFold(word[:5], "file:") && word[5] == '/' {
		p, err := fileURL(word[5:])
		if err != nil {
			return "", err
		}
		return p, checkPath(p)
	}
	switch {
	case path.IsAbs(word):
		return word, nil
	case word == "~" || strings.HasPrefix(word, "~/"):
		if !path.IsAbs(base.Home) {
			return "", ErrNoHome
		}
		return base.Home + word[1:], nil
	case word[0] == '~':
		return "", ErrOtherHome
	case !path.IsAbs(base.Dir):
		return "", ErrNoBase
	}
	return base.Dir + "/" + word, nil
}

// fileURL returns the path of a file URL, given what follows "file:".
func fileURL(rest string) (string, error) {
	if strings.HasPrefix(rest, "//") {
		host, p, ok := strings.Cut(rest[2:], "/")
		if !ok || host != "" && !strings.EqualFold(host, "localhost") {
			return "", ErrFileURL
		}
		rest = "/" + p
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	p, ok := percentDecode(rest)
	if !ok {
		return "", ErrFileURL
	}
	return p, nil
}

// percentDecode decodes every %XX; ok is false if a percent sign is followed by anything else.
func percentDecode(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := unhex(s[i+1]), unhex(s[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), true
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func finishPath(base Base, abs string) (Path, error) {
	if isClean(abs) && len(abs) <= MaxPath && !strings.HasPrefix(abs, "/proc/") && !strings.HasPrefix(abs, "/dev/") {
		return Path{Raw: abs, Clean: abs, Form: FormOf(abs)}, nil // as most are
	}
	p := Path{Raw: squeeze(abs)}
	// Each round takes one /proc link off the front, and none puts one back unless the base itself
	// lies below /proc; the bound is for that. The raw name is tried first, because a ".." behind
	// the link must stay for Resolve.
	for range maxLinks {
		p.Clean = p.Raw
		if !isClean(p.Raw) {
			p.Clean = path.Clean(p.Raw)
		}
		from := p.Raw
		rest, to, ok := magicRoot(base, from)
		if !ok {
			from = p.Clean
			rest, to, ok = magicRoot(base, from)
		}
		if !ok {
			break
		}
		if to == "" {
			return Path{}, fmt.Errorf("path %s: %w", Visible(abs), ErrMagicLink)
		}
		p.Raw = squeeze(to + "/" + rest)
	}
	if len(p.Clean) > MaxPath {
		return Path{}, fmt.Errorf("path %s: %w", Visible(abs), ErrLongPath)
	}
	p.Magic = isMagic(p.Clean)
	p.Form = FormOf(p.Clean)
	return p, nil
}

// squeeze drops empty and "." elements of an absolute path and keeps "..".
func squeeze(p string) string {
	if plain(p, true) {
		return p
	}
	var b strings.Builder
	for el := range strings.SplitSeq(p, "/") {
		if el != "" && el != "." {
			b.WriteByte('/')
			b.WriteString(el)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// magicRoot recognises /proc/PID/root and /proc/PID/cwd (also below task/TID). It returns what
// follows and where the link leads; an empty target means that only the kernel knows.
func magicRoot(base Base, p string) (rest, to string, ok bool) {
	own, tail, ok := procTail(p)
	if !ok {
		return "", "", false
	}
	link, rest, _ := strings.Cut(tail, "/")
	switch {
	case link == "root" && own:
		return rest, "/", true
	case link == "cwd" && own && path.IsAbs(base.Dir):
		return rest, base.Dir, true
	case link == "root" || link == "cwd":
		return rest, "", true
	}
	return "", "", false
}

// procTail splits /proc/self/…, /proc/thread-self/… and /proc/PID/…; own is false for a number,
// which may be any process.
func procTail(p string) (own bool, tail string, ok bool) {
	rest, ok := strings.CutPrefix(p, "/proc/")
	if !ok {
		return false, "", false
	}
	who, tail, _ := strings.Cut(rest, "/")
	own = who == "self" || who == "thread-self"
	if !own && !allDigits(who) {
		return false, "", false
	}
	if after, isTask := strings.CutPrefix(tail, "task/"); isTask {
		_, tail, _ = strings.Cut(after, "/")
	}
	return own, tail, true
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isMagic(p string) bool {
	if strings.HasPrefix(p, "/dev/fd/") {
		return true
	}
	_, tail, ok := procTail(p)
	return ok && (strings.HasPrefix(tail, "fd/") || tail == "exe" || strings.HasPrefix(tail, "map_files/"))
}

// FormOf returns the Unicode form of s.
func FormOf(s string) Form {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			switch {
			case norm.NFC.IsNormalString(s):
				return FormNFC
			case norm.NFD.IsNormalString(s):
				return FormNFD
			}
			return FormMixed
		}
	}
	return FormASCII
}

// isClean reports whether p is absolute and has no ".", "..", empty element or trailing slash.
func isClean(p string) bool { return plain(p, false) }

// plain reports whether p is absolute and has neither empty nor "." elements nor, unless parents
// are let through, "..". Most paths are, and are then used as they stand.
func plain(p string, parents bool) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	start := 1
	for i := 1; i <= len(p) && len(p) > 1; i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		switch el := p[start:i]; {
		case el == "", el == ".", el == ".." && !parents:
			return false
		}
		start = i + 1
	}
	return true
}

// Within reports whether the clean path p is dir or lies below it.
func Within(dir, p string) bool {
	if !isClean(dir) || !isClean(p) {
		return false
	}
	return dir == "/" || p == dir || strings.HasPrefix(p, dir+"/")
}

// A Linker answers, from one observation of a file system, what is behind a path. The same question
// must always get the same answer; an implementation that asks the live system records what it
// answered, so that the answers can be checked again when the decision is used.
type Linker interface {
	// Readlink returns the target if p is a symbolic link. For anything else, a missing file
	// included, link is false. An error means that the answer could not be had.
	Readlink(p string) (target string, link bool, err error)
}

// A Link is one symbolic link that a resolution followed.
type Link struct{ Path, Target string }

// A Resolved path has no symbolic link left in it, as far as the Linker knew.
type Resolved struct {
	Path  string
	Links []Link // in the order followed
}

// Resolve follows the links of an absolute path element by element, the last one included, with ".."
// meaning the parent of the place reached. Give it Path.Raw.
func Resolve(p string, l Linker) (Resolved, error) {
	if !path.IsAbs(p) {
		return Resolved{}, fmt.Errorf("path %s: %w", Visible(p), ErrNotAbsolute)
	}
	var out Resolved
	todo, at := strings.Split(p, "/"), "/"
	for len(todo) > 0 {
		el := todo[0]
		todo = todo[1:]
		switch el {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := strings.TrimSuffix(at, "/") + "/" + el
		if len(next) > MaxPath {
			return Resolved{}, fmt.Errorf("path %s: %w", Visible(p), ErrLongPath)
		}
		target, link, err := l.Readlink(next)
		if err != nil {
			return Resolved{}, fmt.Errorf("path %s: %w", Visible(p), err)
		}
		if !link {
			at = next
			continue
		}
		if err := checkPath(target); err != nil {
			return Resolved{}, fmt.Errorf("link %s: %w", Visible(next), err)
		}
		if out.Links = append(out.Links, Link{next, target}); len(out.Links) > maxLinks {
			return Resolved{}, fmt.Errorf("path %s: %w", Visible(p), ErrLinkLoop)
		}
		if path.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	out.Path = at
	return out, nil
}
