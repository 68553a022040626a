package flight_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
)

// TestAttackPreviewCut: a prompt is looked at from its beginning only, and what
// is put before a secret decides where that ends: within the secret. The rest of
// it must not be shown because it is no longer whole.
func TestAttackPreviewCut(t *testing.T) {
	t.Parallel()
	r := content.NewRedactor(content.RedactorConfig{})
	secret := "AKIA" + "Q7RT5WXYZ2MNB4KL"
	for _, before := range []string{" ", "\n", "password=" + strings.Repeat("x", 100) + " "} {
		for cut := range len(secret) + 1 {
			const head = 64 << 10
			text := strings.Repeat(before, head/len(before)+1)[:head-cut-1] + " " + secret + " and the rest"
			preview := flight.Preview(r, text)
			if strings.Contains(preview, secret[:10]) {
				t.Fatalf("cut at %d after %.10q: %q", cut, before, preview)
			}
		}
	}
}
