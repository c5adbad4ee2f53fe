//go:build unix

package web

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
)

//go:embed assets
var assets embed.FS

// contentTypes are set here: what the system's table says of a name is not to decide
// whether a browser runs a file.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
}

// page serves the page's files, which hold nothing of the store.
func page(mux *http.ServeMux) {
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, e := range entries {
		text, err := fs.ReadFile(assets, "assets/"+e.Name())
		if err != nil {
			panic(err)
		}
		at := "/" + e.Name()
		if e.Name() == "index.html" {
			at = "/{$}"
		}
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentTypes[path.Ext(e.Name())])
			_, _ = w.Write(text) // who has gone does not want it
		})
	}
}
