// Package catalogue holds the apps that come with Basalt: a file each. A new
// cluster has them; `basalt app install` brings those of a newer version in.
package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
)

//go:embed *.yaml
var files embed.FS

// Apps are all of them, in the order of their names. They are valid: a test
// says so.
func Apps() ([]api.App, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var apps []api.App
	for _, e := range entries {
		raw, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		var a api.App
		if err := yaml.UnmarshalStrict(raw, &a, func(d *json.Decoder) *json.Decoder { d.DisallowUnknownFields(); return d }); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		apps = append(apps, a)
	}
	return apps, nil
}
