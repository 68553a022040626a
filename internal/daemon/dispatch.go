package daemon

import (
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// dispatchPolicy is the threshold for requests to agent CLIs that the daemon's
// own environment names. It is read once, here: what an agent has in its
// environment means nothing.
func dispatchPolicy(env func(string) string) (string, error) {
	const name = "LLM_GATEWAY_APPROVAL_POLICY"
	policy := strings.TrimSpace(env(name))
	if _, ok := risk.Threshold(policy); policy != "" && !ok {
		return "", fmt.Errorf("%s is %q: use one of %s", name, policy, strings.Join(risk.Policies(), ", "))
	}
	return policy, nil
}
