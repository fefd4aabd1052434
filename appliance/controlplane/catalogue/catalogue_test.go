package catalogue

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
)

func TestApps(t *testing.T) {
	apps, err := Apps()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range apps {
		names = append(names, a.Meta.Name)
		if a.Kind != api.KindApp || a.Spec.Description == "" || a.Spec.Category == "" || a.Spec.Icon == "" || a.Spec.Notes == "" || a.Spec.ImageURL == "" {
			t.Errorf("%s: kind %q with %+v, want an app with category, icon, description, notes and imageURL", a.Meta.Name, a.Kind, a.Spec)
		}
		if err := api.ValidateApp(a.Spec); err != nil {
			t.Errorf("%s: ValidateApp: %v", a.Meta.Name, err)
		}
		if err := api.ValidateName(a.Meta.Name); err != nil {
			t.Errorf("%s: ValidateName: %v", a.Meta.Name, err)
		}
		if a.Spec.UserData == "" {
			continue
		}
		var config map[string]any
		if err := yaml.UnmarshalStrict([]byte(a.Spec.UserData), &config); err != nil || !strings.HasPrefix(a.Spec.UserData, "#cloud-config\n") {
			t.Errorf("%s: user data is not a valid cloud-config: %v", a.Meta.Name, err)
		}
	}
	for _, want := range []string{"comfyui", "debian", "jupyter", "pytorch", "ubuntu", "vllm"} {
		if !slices.Contains(names, want) {
			t.Errorf("apps = %v, want %s among them", names, want)
		}
	}
}
