package call

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// usePrefix marks a name that the gate gave to the use of a tool.
const usePrefix = "use:"

// HostUse names the use of a tool in a session by a host that has no ids of its
// own, so that a transcript can be compared with the log. The same call, made
// again, has the same name; [NthUse] tells them apart.
func HostUse(session, tool string, input []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %d %s ", len(session), session, len(tool), tool)
	h.Write(input)
	return usePrefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// NthUse names the n-th of several uses with the same name. A host's own id is
// good for one use already.
func NthUse(id string, n int) string {
	if !strings.HasPrefix(id, usePrefix) {
		return id
	}
	return fmt.Sprintf("%s#%d", id, n)
}
