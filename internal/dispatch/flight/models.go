package flight

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Models are the models that answered the owner's requests of the last days, by
// CLI.
func (r *Recorder) Models(tx *store.Tx, owner call.Principal) (map[string][]string, error) {
	out := map[string][]string{}
	_, err := store.All(tx, func(rows *store.Rows) (none struct{}, err error) {
		var cli, model string
		if err = rows.Scan(&cli, &model); err == nil {
			out[cli] = append(out[cli], model)
		}
		return none, err
	}, `SELECT DISTINCT cli, model FROM flight_sum WHERE kind = 'minute' AND model <> '' AND (agent = $1 OR $1 = '*') ORDER BY cli, model`, owner.Agent)
	return out, err
}
