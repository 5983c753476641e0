package main
import ("testing";"context";"os";"runtime";"runtime/pprof";"github.com/seed47132306/terrarium/engine";"github.com/seed47132306/terrarium/engine/journal";"github.com/seed47132306/terrarium/host")
func TestProf(t *testing.T){
	runtime.MemProfileRate=512
	ctx:=context.Background()
	h,_:=host.New(ctx,host.Options{})
	e,_:=engine.New(ctx,engine.Options{Host:h,Durability: journal.Volatile,HibernateAfter:hibernateAfter})
	w:=&world{e,t}
	ids:=w.listeners(10000)
	for _,c:=range ids { w.request(ctx,c,make([]byte,100),nil)}
	w.untilHibernated(10000)
	heap()
	f,_:=os.Create("/tmp/p3.prof"); pprof.Lookup("heap").WriteTo(f,0); f.Close()
	e.Close(ctx)
}
