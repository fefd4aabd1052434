package api

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestGPUReasonsAreDescribed checks that the API's description lists exactly these
// reasons and those of the other conditions.
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
		t.Errorf("GPUReadyOf a running instance = %+v, %v; want %+v, true", c, known, ready)
	}
	i.Assignment.NodeLost = true // the last report of a lost node is out of date
	if c, known := GPUReadyOf(i); known {
		t.Errorf("GPUReadyOf an instance whose node is lost = %+v, want none", c)
	}
}
