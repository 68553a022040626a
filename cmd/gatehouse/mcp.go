package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

func newMCP(a *app) *cobra.Command {
	var name, token string
	cmd := &cobra.Command{
		Use: "mcp [--upstream NAME [-- COMMAND [ARGUMENTS]]]", Short: "Serve MCP on standard input and output, through the gate",
		Long: `What an agent's host starts as its MCP server. Alone it shows the gate's own tools
and all servers that ` + "`gatehouse upstream add`" + ` entered, each under its name. With
--upstream it shows one of them, under its own names. With a command after -- it
starts that server itself and puts the gate between it and the agent.`,
		Example: `  gatehouse mcp
  gatehouse mcp --upstream github
  gatehouse mcp --upstream files -- npx -y @modelcontextprotocol/server-filesystem .`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && name == "" {
				return usageError{errors.New("--upstream NAME names the server that the command starts")}
			}
			p, err := place.Find(a.home)
			if err != nil {
				return err
			}
			secret, err := client.Secret(token)
			if err != nil {
				return usageError{err}
			}
			bridge := client.NewMCP(p.Socket(), secret, name)
			return bridge.Run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&name, "upstream", "", "show this server alone")
	cmd.Flags().StringVar(&token, "token-file", "", "file with the agent's token (default: the calling process is the agent)")
	return cmd
}
