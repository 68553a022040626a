package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// tone folds a level, a verdict, an outcome or a state to what colour and
// shape stand for: allow, ask, deny, or "" for none of them.
func tone(s string) string {
	switch s {
	case "AUTO_APPROVE", "allowed", "succeeded", "approved", "completed":
		return "allow"
	case "CONFIRM_SESSION", "CONFIRM_SINGLE_USE", "pending", "unknown", "edited", "asked", "queued", "running":
		return "ask"
	case "DENY", "denied", "refused", "failed", "responded", "expired":
		return "deny"
	}
	return ""
}

// levelWords says a level as a person would.
func levelWords(l string) string {
	switch l {
	case "AUTO_APPROVE":
		return "goes ahead"
	case "CONFIRM_SESSION":
		return "asks per session"
	case "CONFIRM_SINGLE_USE":
		return "asks every time"
	case "DENY":
		return "denies"
	}
	return l
}

// needVerbs say each built-in capability as something the call does.
var needVerbs = map[call.Capability]string{
	call.FSRead: "reads files", call.FSWrite: "writes files", call.FSDelete: "deletes files",
	call.NetEgress: "connects to the network", call.ProcExec: "runs a program",
	call.DataUser: "reads personal data", call.SecretsAccess: "reads secrets",
}

// needWords says a capability in words; an operator's own is shown by name.
func needWords(c call.Capability) string {
	if w, ok := needVerbs[c]; ok {
		return w
	}
	return "uses " + string(c)
}

// isPlace reports whether the scope of a capability is a path or a host.
func isPlace(c call.Capability) bool {
	switch c {
	case call.FSRead, call.FSWrite, call.FSDelete, call.NetEgress:
		return true
	}
	return false
}

// riskWords says where on the scale a risk lies; 61 is where policy asks by
// default.
func riskWords(n int) string {
	switch {
	case n >= 81:
		return "very high"
	case n >= 61:
		return "high"
	case n >= 31:
		return "moderate"
	}
	return "low"
}

func titleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// durationWords writes how long until t, as the countdown of a page does.
func durationWords(t time.Time) string {
	s := int(max(0, time.Until(t).Round(time.Second)).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
