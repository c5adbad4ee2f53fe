module example.com/holdfast/bench

go 1.26.0

require example.com/holdfast v0.0.0-00010101000000-000000000000

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/google/renameio/v2 v2.0.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace example.com/holdfast => ../
