package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list answers with a list, or with a page of it. All pages have the resource version of the first
// page, so that a watch from there reports what changed in the meantime.
func (s *Server) list(t *table, c *Request) (any, error) {
	q, err := newSelection(c.Namespace, c.Query)
	if err != nil {
		return nil, err
	}
	limit, _ := strconv.Atoi(c.Query.Get("limit"))
	version, start, err := readContinue(c.Query.Get("continue"))
	if err != nil {
		return nil, err
	}
	if version == 0 {
		version = t.version
	}
	list := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta   `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{
		TypeMeta: metav1.TypeMeta{Kind: c.Resource.Kind + "List", APIVersion: c.Version.String()},
		Metadata: metav1.ListMeta{ResourceVersion: versionText(version)},
		Items:    []json.RawMessage{},
	}
	first, _ := slices.BinarySearch(t.keys, start)
	for _, key := range t.keys[first:] {
		o := t.objects[key]
		if !q.has(o) {
			continue
		}
		if limit > 0 && c.Items == limit {
			list.Metadata.Continue = writeContinue(version, key)
			break
		}
		text, err := c.show(o)
		if err != nil {
			return nil, err
		}
		c.Items++
		list.Items = append(list.Items, text)
	}
	return &list, nil
}

func writeContinue(version int64, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(versionText(version) + " " + key))
}

func readContinue(token string) (version int64, key string, err error) {
	if token == "" {
		return 0, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		var first string
		first, key, _ = strings.Cut(string(text), " ")
		version, err = strconv.ParseInt(first, 10, 64)
	}
	if err != nil {
		return 0, "", apierrors.NewBadRequest("the continue token is not valid")
	}
	return version, key, nil
}
