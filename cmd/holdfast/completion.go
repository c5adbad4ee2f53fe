//go:build unix

package main

import "github.com/spf13/cobra"

func (a *app) completionCmd() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. Where it is loaded from:

  bash        source <(holdfast completion bash)                       (in ~/.bashrc)
  zsh         source <(holdfast completion zsh)                        (in ~/.zshrc, after compinit)
  fish        holdfast completion fish > ~/.config/fish/completions/holdfast.fish
  powershell  holdfast completion powershell | Out-String | Invoke-Expression

Commands, flags and their fixed values are completed, and from the store that --dir or
HOLDFAST_DIR names: queues, IDs for show and load, and names of failed messages. The
store is only looked at, without waiting; where that fails nothing is offered.`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return root.GenPowerShellCompletionWithDesc(a.out)
		},
	}
}
