package manifest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
)

// sarif is what SARIF 2.1.0 says about the parts that are used: what must be
// there, what words there are, and that nothing else is.
const sarif = `{
	"type": "object", "required": ["version", "runs"], "additionalProperties": false,
	"properties": {
		"$schema": {"type": "string"}, "version": {"const": "2.1.0"},
		"runs": {"type": "array", "items": {
			"type": "object", "required": ["tool", "results"], "additionalProperties": false,
			"properties": {
				"tool": {"type": "object", "required": ["driver"], "additionalProperties": false, "properties": {"driver": {
					"type": "object", "required": ["name"], "additionalProperties": false,
					"properties": {
						"name": {"type": "string", "minLength": 1}, "version": {"type": "string"},
						"rules": {"type": "array", "uniqueItems": true, "items": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "string"}}}}
					}
				}}},
				"results": {"type": "array", "items": {
					"type": "object", "required": ["message", "ruleId"], "additionalProperties": false,
					"properties": {
						"ruleId": {"type": "string"}, "level": {"enum": ["none", "note", "warning", "error"]},
						"message": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {"text": {"type": "string"}}},
						"locations": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
							"physicalLocation": {"type": "object", "required": ["artifactLocation"], "additionalProperties": false, "properties": {
								"artifactLocation": {"type": "object", "additionalProperties": false, "properties": {"uri": {"type": "string", "pattern": "^[^ \\\\]*$"}}}}},
							"logicalLocations": {"type": "array", "uniqueItems": true, "items": {"type": "object", "additionalProperties": false, "properties": {"fullyQualifiedName": {"type": "string"}}}}
						}}}
					}
				}}
			}
		}}
	}
}`

func TestSARIF(t *testing.T) {
	t.Parallel()
	schema := &jsonschema.Schema{}
	if err := json.Unmarshal([]byte(sarif), schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, findings := range [][]manifest.Finding{
		nil,
		{
			{Code: "tool.added", Severity: manifest.Medium, Path: "tools/x", Message: "m"},
			{Code: "tool.added", Severity: manifest.High, Path: "tools/y", Message: "n"},
			{Code: "tool.removed", Severity: manifest.Info, Path: "tools/z", Message: "o"},
		},
	} {
		text, err := manifest.SARIF(findings, "my permissions.json", "v1")
		if err != nil {
			t.Fatal(err)
		}
		var whole any
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(whole); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		var got struct {
			Runs []struct {
				Tool struct {
					Driver struct{ Rules []struct{ ID string } }
				}
				Results []struct{ RuleID, Level string }
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		levels := []string{"warning", "error", "note"}
		for i, r := range got.Runs[0].Results {
			if r.RuleID != findings[i].Code || r.Level != levels[i] {
				t.Errorf("finding %d is %+v", i, r)
			}
			if !slices.Contains(got.Runs[0].Tool.Driver.Rules, struct{ ID string }{r.RuleID}) {
				t.Errorf("%s is no rule of the driver", r.RuleID)
			}
		}
		if len(got.Runs) != 1 || len(got.Runs[0].Results) != len(findings) {
			t.Errorf("%d findings became\n%s", len(findings), text)
		}
	}
}
