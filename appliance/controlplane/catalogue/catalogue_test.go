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
		checkReached(t, a)
	}
	for _, want := range []string{"comfyui", "debian", "jupyter", "pytorch", "ubuntu", "vllm"} {
		if !slices.Contains(names, want) {
			t.Errorf("apps = %v, want %s among them", names, want)
		}
	}
}

// checkReached checks that an app is reached by the gateways in networks with IPv4 and in
// those with IPv6 only: its firewall admits both addresses of the node, and it listens
// not only to IPv4.
func checkReached(t *testing.T, a api.App) {
	t.Helper()
	data := a.Spec.UserData
	if strings.Contains(data, "type filter hook input") {
		for _, rule := range []string{"ip saddr 169.254.169.254 accept", "ip6 saddr fe80::a9fe:a9fe accept"} {
			if !strings.Contains(data, rule) {
				t.Errorf("%s: the rules of its firewall lack %q, so the gateways do not reach it", a.Meta.Name, rule)
			}
		}
	}
	for _, word := range strings.Fields(data) {
		if word == "0.0.0.0" || strings.HasSuffix(word, "=0.0.0.0") {
			t.Errorf("%s: it listens at %s, want both address families", a.Meta.Name, word)
		}
	}
}
