package main

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// prefixes parses the networks of a setting.
func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range texts {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%s %s: want an address and a prefix length, e.g. 192.0.2.0/24", flag, s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// readConfig sets the flags from a YAML file whose keys are the flags' names. Flags that are
// set on the command line take precedence.
func readConfig(path string, flags *pflag.FlagSet) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for key, value := range values {
		f := flags.Lookup(key)
		if f == nil || key == "config" {
			return fmt.Errorf("%s: unknown setting %q; basaltd --help lists all settings", path, key)
		}
		if f.Changed || value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, v := range list {
			if err := f.Value.Set(fmt.Sprint(v)); err != nil {
				return fmt.Errorf("%s: %s: %w", path, key, err)
			}
		}
	}
	return nil
}
