package manifest

import (
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// SARIF returns the findings in the format that code-review services read
// (SARIF 2.1.0), each pointing at the manifest's file.
func SARIF(findings []Finding, file, version string) ([]byte, error) {
	type object = map[string]any
	rules, results := []object{}, []object{}
	seen := map[string]bool{}
	for _, f := range findings {
		if !seen[f.Code] {
			seen[f.Code] = true
			rules = append(rules, object{"id": f.Code})
		}
		results = append(results, object{
			"ruleId": f.Code, "level": sarifLevel(f.Severity), "message": object{"text": f.Path + ": " + f.Message},
			"locations": []object{{
				"physicalLocation": object{"artifactLocation": object{"uri": (&url.URL{Path: file}).String()}},
				"logicalLocations": []object{{"fullyQualifiedName": f.Path}},
			}},
		})
	}
	return json.Marshal(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": object{"name": "gatehouse manifest", "version": version, "rules": rules}}, "results": results}},
	}, json.Deterministic(true), jsontext.WithIndent("  "))
}

func sarifLevel(s Severity) string {
	switch s {
	case Info:
		return "note"
	case Medium:
		return "warning"
	}
	return "error"
}
