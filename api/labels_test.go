package api

import "testing"

func TestLabelSelector(t *testing.T) {
	labels := map[string]string{"team": "vision", "env": "prod", "empty": ""}
	for selector, want := range map[string]bool{
		"": true, "team=vision": true, "team==vision": true, "team=other": false, "team": true, "!team": false, "!none": true, "none": false,
		"team!=other": true, "none!=x": true, "team!=vision": false, "team=vision,env=prod": true, "team = vision , env != test": true,
		"team=vision,env=test": false, "empty=": true, "empty": true, "team=": false,
	} {
		s, err := ParseLabelSelector(selector)
		if err != nil {
			t.Errorf("ParseLabelSelector(%q): %v", selector, err)
		}
		if got := s.Matches(labels); got != want {
			t.Errorf("selector %q matches = %v, want %v", selector, got, want)
		}
	}
	for _, bad := range []string{",", "=x", "team=vision,", "!", "!team=x", "a!b=c", "team!", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"} {
		if s, err := ParseLabelSelector(bad); CodeOf(err) != CodeInvalid {
			t.Errorf("ParseLabelSelector(%q) = %v, %v; want an error with code %s", bad, s, err, CodeInvalid)
		}
	}
}

func FuzzLabelSelector(f *testing.F) {
	f.Add("team=vision,env!=prod,!x,y")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseLabelSelector(text)
		if err == nil && len(s) > maxSelectorTerms {
			t.Errorf("ParseLabelSelector(%q) has %d conditions, want at most %d", text, len(s), maxSelectorTerms)
		}
		s.Matches(map[string]string{"team": "vision"})
	})
}
