package api

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// The list of reasons is closed: the API's description has them all, and no others but
// those of the other conditions.
func TestGPUReasonsAreDescribed(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal(OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	condition := doc.Components.Schemas["InstanceCondition"].Properties
	want := []string{"guest", "crash", "running", "done", "errors"}
	for _, r := range GPUReasons {
		want = append(want, string(r))
	}
	if got := condition["reason"].Enum; !slices.Equal(got, want) {
		t.Errorf("reasons in openapi.yaml:\n%v, want\n%v", got, want)
	}
	if !slices.Contains(condition["type"].Enum, ConditionGPUReady) {
		t.Errorf("types in openapi.yaml: %v, want %s among them", condition["type"].Enum, ConditionGPUReady)
	}
}

func TestGPUReadyOf(t *testing.T) {
	ready := Condition{Type: ConditionGPUReady, Status: true, Reason: string(GPUReady)}
	i := Instance{Assignment: InstanceAssignment{Node: "n"}, Status: InstanceStatus{Node: "n", Phase: InstanceRunning, Conditions: []Condition{{Type: "SetUp"}, ready}}}
	if c, known := GPUReadyOf(i); !known || c != ready {
		t.Errorf("of an instance that runs: %+v, %v", c, known)
	}
	i.Assignment.NodeLost = true // what its node said last is no longer so
	if c, known := GPUReadyOf(i); known {
		t.Errorf("of an instance whose node is lost: %+v", c)
	}
}
