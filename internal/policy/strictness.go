package policy

import "github.com/seed-3ebc6b8a/gatehouse/internal/call"

// The levels of strictness, each with all of the one before.
const (
	// StrictnessMinimal: only a dangerous step of an execution blocks an agent.
	StrictnessMinimal = "minimal"
	// StrictnessStandard: an agent that keeps violating policy is blocked.
	StrictnessStandard = "standard"
	// StrictnessElevated: it is blocked sooner, and what deletes or cannot be
	// undone is verified.
	StrictnessElevated = "elevated"
	// StrictnessMaximum: sooner still, and everything beyond a read is.
	StrictnessMaximum = "maximum"
)

var (
	strictnesses = []string{StrictnessMinimal, StrictnessStandard, StrictnessElevated, StrictnessMaximum}
	tolerances   = []string{"aggressive", "moderate", "conservative"} // the loosest first
)

// Strikes is how many violations within the danger zone's window block an
// agent; 0 is none.
func (s *Settings) Strikes() int {
	switch s.Strictness {
	case StrictnessMinimal:
		return 0
	case StrictnessElevated:
		return 8
	case StrictnessMaximum:
		return 3
	}
	return 25
}

// verifies says why the strictness in force wants a call verified (a person's
// yes to this very use, with a fresh second factor), "" if it does not.
func (s *Snapshot) verifies(in *Input) string {
	strictness := s.Settings.Strictness
	if strictness != StrictnessElevated && strictness != StrictnessMaximum {
		return ""
	}
	if in.Call.Kind == call.Native {
		return s.verifiesNative(in, strictness)
	}
	switch {
	case in.Facts.Irreversible:
		return "at strictness " + strictness + " what cannot be undone is verified"
	case strictness == StrictnessMaximum && !reads(in):
		return "at strictness maximum everything beyond a read is verified"
	}
	return ""
}

func (s *Snapshot) verifiesNative(in *Input, strictness string) string {
	op := nativeOperation(in.Call)
	switch {
	case op == nil || op.Level == call.AutoApprove:
		return "" // a read, the recovery path, or what grants nothing
	case op.Endpoint == call.Delete:
		return "at strictness " + strictness + " every deletion is verified"
	case strictness == StrictnessMaximum && !(op.FreeIfTightening && !pinned(op, in.Facts)):
		return "at strictness maximum everything beyond a read is verified"
	}
	return ""
}
