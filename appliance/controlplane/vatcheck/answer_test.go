package vatcheck

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const about = `"countryCode":"FR","vatNumber":"40303265045"`

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   Answer
		reason string
		scope  Scope
	}{
		"valid": {200, `{` + about + `,"valid":true,"requestIdentifier":"WAPI1","name":"ACME\n SA ","address":"1 RUE A\n75001 PARIS"}`,
			Answer{Valid: true, Consultation: "WAPI1", Name: "ACME SA", Address: "1 RUE A 75001 PARIS"}, "", 0},
		"valid, undisclosed":         {200, `{` + about + `,"valid":true,"requestIdentifier":"","name":"---","address":"---","userError":"VALID"}`, Answer{Valid: true}, "", 0},
		"valid, nulls":               {200, `{` + about + `,"valid":true,"requestIdentifier":null,"name":null}`, Answer{Valid: true}, "", 0},
		"invalid":                    {200, `{` + about + `,"valid":false,"name":"---","requestIdentifier":"WAPI2"}`, Answer{Consultation: "WAPI2"}, "", 0},
		"not proven by an error":     {200, `{` + about + `,"valid":false,"userError":"MS_UNAVAILABLE"}`, Answer{}, "MS_UNAVAILABLE", OfState},
		"error with status 200":      {200, `{"actionSucceed":false,"errorWrappers":[{"error":"MS_MAX_CONCURRENT_REQ"}]}`, Answer{}, "MS_MAX_CONCURRENT_REQ", OfState},
		"error with status 400":      {400, `{"actionSucceed":false,"errorWrappers":[{"error":"INVALID_INPUT","message":"x"}]}`, Answer{}, "INVALID_INPUT", OfNumber},
		"the seller's number":        {200, `{"errorWrappers":[{"error":"INVALID_REQUESTER_INFO"}]}`, Answer{}, "INVALID_REQUESTER_INFO", OfRequester},
		"too many":                   {500, `{"errorWrappers":[{"error":"GLOBAL_MAX_CONCURRENT_REQ"}]}`, Answer{}, "GLOBAL_MAX_CONCURRENT_REQ", OfService},
		"unknown code":               {200, `{"errorWrappers":[{"error":"<script>"}]}`, Answer{}, "unknown error code", OfService},
		"error beside a result":      {200, `{` + about + `,"valid":true,"errorWrappers":[{"error":"TIMEOUT"}]}`, Answer{}, "TIMEOUT", OfState},
		"failed without a code":      {200, `{` + about + `,"valid":true,"actionSucceed":false,"errorWrappers":[]}`, Answer{}, "not successful", OfService},
		"no result":                  {200, `{` + about + `}`, Answer{}, "no result", OfService},
		"result null":                {200, `{` + about + `,"valid":null}`, Answer{}, "no result", OfService},
		"null":                       {200, `null`, Answer{}, "no result", OfService},
		"a text as result":           {200, `{` + about + `,"valid":"true"}`, Answer{}, "not valid JSON", OfService},
		"a number as name":           {200, `{` + about + `,"valid":true,"name":7}`, Answer{}, "not valid JSON", OfService},
		"HTML":                       {200, `<html></html>`, Answer{}, "not valid JSON", OfService},
		"more after it":              {200, `{` + about + `,"valid":true} {}`, Answer{}, "not valid JSON", OfService},
		"contradiction":              {200, `{` + about + `,"valid":true,"userError":"INVALID"}`, Answer{}, "contradicts itself", OfService},
		"another number":             {200, `{"countryCode":"FR","vatNumber":"1","valid":true}`, Answer{}, "another number", OfService},
		"another country":            {200, `{"countryCode":"DE","vatNumber":"40303265045","valid":true}`, Answer{}, "another number", OfService},
		"no number":                  {200, `{"valid":true}`, Answer{}, "another number", OfService},
		"valid with status 503":      {503, `{` + about + `,"valid":true}`, Answer{}, "status 503", OfService},
		"redirect":                   {302, ``, Answer{}, "status 302", OfService},
		"busy without a body":        {429, ``, Answer{}, "status 429", OfService},
		"control characters of name": {200, `{` + about + `,"valid":true,"name":"A\u0000\u202eB\u200bC"}`, Answer{Valid: true, Name: "A B C"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(c.status, []byte(c.body), "FR", "40303265045")
			var f *Failure
			if errors.As(err, &f) != (c.reason != "") || f != nil && (!strings.Contains(f.Reason, c.reason) || f.Scope != c.scope) {
				t.Fatalf("decode = %+v, %#v; want failure %q of scope %d", got, f, c.reason, c.scope)
			}
			if got != c.want {
				t.Errorf("decode = %+v, want %+v", got, c.want)
			}
		})
	}
}

// Long texts are cut, at whole characters.
func TestDecodeLimits(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	got, err := decode(200, []byte(`{`+about+`,"valid":true,"name":"`+long+`","address":"`+long+`","requestIdentifier":"`+long+`"}`), "FR", "40303265045")
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string][2]int{"name": {utf8.RuneCountInString(got.Name), maxName}, "address": {utf8.RuneCountInString(got.Address), maxAddress}, "consultation": {utf8.RuneCountInString(got.Consultation), maxConsultation}} {
		if n[0] != n[1] {
			t.Errorf("%s has %d characters, want %d", what, n[0], n[1])
		}
	}
}

// FuzzDecode: an answer is never taken for valid unless it says so about the number that
// was asked, and its texts have one line of limited length.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{` + about + `,"valid":true,"name":"A"}`, `{` + about + `,"valid":false}`, `{"errorWrappers":[{"error":"TIMEOUT"}]}`, `null`, `[]`, `{"valid":{}}`, `{` + about + `,"Valid":true,"valid":false}`} {
		f.Add(200, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got, err := decode(status, body, "FR", "40303265045")
		var failure *Failure
		if err != nil {
			if !errors.As(err, &failure) || got != (Answer{}) || len(failure.Reason) > 100 {
				t.Fatalf("decode = %+v, %v; want an empty answer and a short *Failure", got, err)
			}
			return
		}
		lower := strings.ToLower(string(body))
		if status != http.StatusOK || got.Valid && !strings.Contains(lower, "true") {
			t.Errorf("decode(%d, %q) = %+v", status, body, got)
		}
		for _, text := range []string{got.Name, got.Address, got.Consultation} {
			if utf8.RuneCountInString(text) > maxAddress || strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
				t.Errorf("text = %q, want one short line", text)
			}
		}
	})
}
