package api

import (
	"encoding/base64"
	"encoding/json"
)

// PageToken encodes the position where a page ended as the token for the next page.
func PageToken(place any) string { return base64.RawURLEncoding.EncodeToString(Encode(place)) }

// FromPageToken decodes a PageToken; an empty token gives the zero position. The error
// is an *Error with CodeInvalid, since tokens come from clients.
func FromPageToken[T any](token string) (T, error) {
	var place, none T
	if token == "" {
		return none, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &place)
	}
	if err != nil {
		return none, Errorf(CodeInvalid, "is not a token from a previous page").At("continue")
	}
	return place, nil
}
