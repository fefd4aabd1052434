// Package catalogue contains the apps that are part of Basalt, one file each. A new
// cluster has them; `basalt app install` adds those of a newer version.
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

// Apps returns all apps, in the order of their names. A test checks that they are
// valid.
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
