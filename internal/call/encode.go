package call

import (
	"encoding/hex"

	"github.com/go-json-experiment/json"
)

// AppendJSON appends the decision as JSON. Every call that is let through is
// written down, and most of what was said about it was said about others
// before: ballots that were made in advance are copied.
func (d *Decision) AppendJSON(dst []byte) ([]byte, error) {
	if len(d.Requires) > 0 || d.Pinned || d.TakesCode {
		text, err := json.Marshal(d) // not the common case
		return append(dst, text...), err
	}
	dst = append(append(append(dst, `{"level":"`...), d.Level.String()...), `","ballots":[`...)
	for i := range d.Ballots {
		if i > 0 {
			dst = append(dst, ',')
		}
		text := d.Ballots[i].encoded
		if text == nil {
			var err error
			if text, err = json.Marshal(plainBallot(d.Ballots[i])); err != nil {
				return dst, err
			}
		}
		dst = append(dst, text...)
	}
	dst = append(dst, ']')
	dst = appendDigest(dst, `,"digest":"`, d.Digest)
	dst = appendDigest(dst, `,"world":"`, d.World)
	dst = appendDigest(dst, `,"policy":"`, d.Policy)
	return append(dst, '}'), nil
}

func appendDigest(dst []byte, name string, d Digest) []byte {
	return append(hex.AppendEncode(append(dst, name...), d[:]), '"')
}

// AppendVotes appends every vote of every stage as one JSON list.
func (d *Decision) AppendVotes(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	for i := range d.Ballots {
		b := &d.Ballots[i]
		text := b.votes
		if text == nil {
			var err error
			if text, err = json.Marshal(b.Votes); err != nil {
				return dst, err
			}
		}
		if len(b.Votes) > 0 && dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, text[1:len(text)-1]...)
	}
	return append(dst, ']'), nil
}
