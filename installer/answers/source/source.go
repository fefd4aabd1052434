// Package source finds the answer file of an unattended installation: named on the
// kernel's command line, or on a medium with a known label.
//
//	basalt.answers=LABEL:/path        a file on the medium with that label
//	basalt.answers=/dev/sdb1:/path    a file on that device
//	basalt.answers=https://host/path  fetched; needs basalt.network=
//	basalt.network=dhcp               on the first card that gets an address
//	basalt.network=CARD,ADDRESS/PREFIX[,GATEWAY[,DNS]]
//
// Without basalt.answers, a medium with the label BASALT-ANS is used.
package source

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/strictyaml"
	"github.com/basalt-gpu/basalt/installer/answers"
)

// Defaults if the command line names no file.
const (
	Label = "BASALT-ANS"
	File  = "answers.yaml"
)

// Source is the location of an answer file: a file on a device, or a URL.
type Source struct {
	Named  bool // on the command line: it must exist
	Device string
	Path   string
	URL    string
	DHCP   bool // for the URL
	Card   string
	Addr   netip.Prefix
	Router netip.Addr
	DNS    netip.Addr
}

func (s Source) String() string {
	if s.URL != "" {
		return s.URL
	}
	return s.Device + ":/" + s.Path
}

const answersForm = "write basalt.answers=LABEL:/answers.yaml, /dev/sdb1:/answers.yaml or https://host/answers.yaml"

var cardForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)

// FromCommandLine returns the source named on the kernel's command line.
func FromCommandLine(cmdline string) (Source, error) {
	s := Source{Device: "/dev/disk/by-label/" + Label, Path: File}
	network := ""
	for _, word := range strings.Fields(cmdline) {
		key, value, _ := strings.Cut(word, "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "basalt.answers":
			s.Named = true
			if err := s.parse(value); err != nil {
				return s, err
			}
		case "basalt.network":
			network = value
		}
	}
	if s.URL == "" {
		return s, nil
	}
	return s, s.parseNetwork(network)
}

func wrong(hint, reason string, args ...any) error {
	return api.Errorf(api.CodeInvalid, "the kernel's command line: "+reason, args...).WithHint("%s", hint)
}

func (s *Source) parse(value string) error {
	if strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://") {
		u, err := url.Parse(value)
		if err != nil || u.Host == "" {
			return wrong(answersForm, "basalt.answers=%q is no URL", value)
		}
		s.Device, s.Path, s.URL = "", "", u.String()
		return nil
	}
	place, err := answers.ParsePlace(value)
	var bad *answers.Bad
	switch {
	case errors.As(err, &bad):
		return wrong(answersForm, "basalt.answers=%s", bad.Reason)
	case place.Path == ".":
		return wrong(answersForm, "basalt.answers=%q names no file", value)
	}
	s.Device, s.Path, s.URL = place.Device, place.Path, ""
	return nil
}

func (s *Source) parseNetwork(value string) error {
	const form = "write basalt.network=dhcp or basalt.network=eno1,192.0.2.11/24,192.0.2.1"
	if value == "" {
		return wrong(form, "a URL in basalt.answers needs basalt.network")
	}
	if value == "dhcp" {
		s.DHCP = true
		return nil
	}
	parts := strings.Split(value, ",")
	if len(parts) < 2 || len(parts) > 4 || !cardForm.MatchString(parts[0]) {
		return wrong(form, "basalt.network=%q is neither dhcp nor a card and an address", value)
	}
	var err error
	s.Card = parts[0]
	if s.Addr, err = answers.ParseAddress(parts[1]); err != nil {
		return wrong(form, "basalt.network: %v", err)
	}
	for i, to := range []*netip.Addr{&s.Router, &s.DNS} {
		if len(parts) > i+2 {
			if *to, err = netip.ParseAddr(parts[i+2]); err != nil {
				return wrong(form, "basalt.network: %q is not an address", parts[i+2])
			}
		}
	}
	return nil
}

func tooLarge(s Source) error {
	return api.Errorf(api.CodeTooLarge, "%s is larger than %d KiB", s, strictyaml.MaxBytes>>10).WithHint("is it an answer file?")
}

func unreadable(s Source, err error) error {
	return api.Errorf(api.CodeNotFound, "the answer file %s cannot be read: %v", s, err).
		WithHint("check the label, the path and the medium; without basalt.answers the installer asks")
}

func notOK(s Source, status string) error {
	return unreadable(s, fmt.Errorf("the server answers %s", status))
}
