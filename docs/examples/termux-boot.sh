#!/data/data/com.termux/files/usr/bin/sh
# Termux:Boot runs what is in ~/.termux/boot/ when the phone has started: copy this file there, and
# chmod 700. The store is ~/queue, the command for each message ~/bin/on-mail: change both.
set -eu
export HOLDFAST_DIR="$HOME/queue"

# Without it Android stops the worker as soon as the screen is dark.
termux-wake-lock

# Where termux-services is set up it looks after the worker: leave the rest of this file out, and use
#   . "$PREFIX/etc/profile.d/start-services.sh"
log="$HOME/holdfast-mail.log"
while :; do
	code=0
	"$HOME/bin/holdfast" work mail --label termux -- "$HOME/bin/on-mail" >>"$log" 2>&1 || code=$?
	case $code in
	2 | 3) # called wrongly, or the store needs the operator: starting again does not help
		if command -v termux-notification >/dev/null; then
			termux-notification --title 'Holdfast stopped' --content "exit code $code: see $log"
		fi
		exit "$code"
		;;
	esac
	sleep 10
done
